"""Every sentence of an answer against the results it cites. Pure; linear in the answer's length."""
