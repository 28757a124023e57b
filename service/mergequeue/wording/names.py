"""Names that many texts quote."""

from service.text.phrases import Code

MERGE = Code("/merge")
TEST_BRANCHES = Code("headgate/merge/**")
