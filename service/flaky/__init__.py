"""Which tests fail without a reason in the code: from reports to a decision."""
