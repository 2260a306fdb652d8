"""Does content leave the process anywhere but, redacted, into the vault?"""
