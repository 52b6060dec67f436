"""The local world of `kortex demo`. Only the command imports it, never the product."""
