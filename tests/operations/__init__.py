"""Operations over a real store and a provider made of values."""
