"""`kortex eval`: recorded incidents asked, and the answers scored."""
