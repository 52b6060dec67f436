"""An OpenID Connect provider: its tokens, and signing in there (the extra `kortex[oidc]`)."""
