"""Bodies of the endpoints about how well tests are judged, in snake_case."""

from service.testhealth.api.models.tests import AboutTests, UpdateTestSettings


class GetDetectionQuality(AboutTests):
    """`/flaky-tests/get-detection-quality`: how well past flags hold by all evidence of today."""


class PreviewTestSettings(UpdateTestSettings):
    """`/flaky-tests/preview-settings`: what other settings would have said; changes nothing."""
