"""The language the tests are written in: worlds, people, databases, expected text.

Nothing here tests anything, and nothing here is imported by the product.
"""
