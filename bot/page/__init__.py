"""The page in the browser: its files and how they are served."""
