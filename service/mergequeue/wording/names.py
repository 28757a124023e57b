"""Names that many texts quote."""

from service.text.phrases import Code

MERGE = Code("/merge")
AGAIN = Code("/merge --again")
TEST_BRANCHES = Code("headgate/merge/**")
