"""`python -m bot` is `headgate`."""

from bot.cli import app

if __name__ == "__main__":
    app.main()
