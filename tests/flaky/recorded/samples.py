"""The sample tests, one set a runner: each passes, fails, throws, skips and nests where it can."""

PYTEST = """
import pytest

attempts = []


class TestCart:
    def test_total(self):
        assert 10.0 + 0.01 == 10.01

    def test_discount(self):
        assert [1, 2] == [1, 3], "two \\x1b[31mred\\x1b[0m & <b>bold</b>"

    @pytest.mark.parametrize("name", ["plain", "tä/st", "a::b"])
    def test_names(self, name, record_property):
        record_property("owner", "web")


@pytest.mark.skip(reason="not on this machine")
def test_skipped():
    pass


@pytest.fixture
def broken():
    raise RuntimeError("no database")


def test_setup(broken):
    pass


@pytest.mark.xfail
def test_expected_to_fail():
    assert False
"""

UNITTEST = """
import unittest


class Cart(unittest.TestCase):
    def test_total(self):
        print("printed by a test")

    def test_discount(self):
        self.assertEqual(1, 2)

    def test_throws(self):
        raise KeyError("missing")

    @unittest.skip("not here")
    def test_skipped(self):
        pass

    def test_parts(self):
        for part in range(3):
            with self.subTest(part=part):
                self.assertLess(part, 2)
"""

DESCRIBED = """
describe('cart', () => {
  it('adds up', () => {});
  describe('with a discount', () => {
    it('fails <b>so</b> & thus', () => { throw new Error('10 != \\u001b[31m11\\u001b[0m'); });
    it('handles ümlauts', () => {});
  });
  it.skip('is left out', () => {});
});
"""

VITEST = f"import {{ describe, it }} from 'vitest';\n{DESCRIBED}"
NODE = f"const {{ describe, it }} = require('node:test');\n{DESCRIBED}"
JEST = DESCRIBED
MOCHA = DESCRIBED

PLAYWRIGHT = """
const { test, expect } = require('@playwright/test');
test.describe('cart', () => {
  test('adds up', () => {});
  test('passes when tried again', ({}, info) => { expect(info.retry).toBe(1); });
  test('fails each time', () => { expect(10).toBe(11); });
  test.skip('is left out', () => {});
});
"""
PLAYWRIGHT_CONFIG = """
module.exports = {
  testDir: '.', testMatch: 'cart.play.js', retries: 1,
  reporter: [['junit', { outputFile: 'report.xml' }]],
};
"""

CTEST = """
cmake_minimum_required(VERSION 3.21)
project(cart NONE)
enable_testing()
add_test(NAME adds_up COMMAND ${CMAKE_COMMAND} -E true)
add_test(NAME fails COMMAND ${CMAKE_COMMAND} -E false)
add_test(NAME is_disabled COMMAND ${CMAKE_COMMAND} -E true)
set_tests_properties(is_disabled PROPERTIES DISABLED TRUE)
"""

SUREFIRE = """
import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Disabled;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class CartTest {
    static int attempts = 0;

    @Test
    void addsUp() {}

    @Test
    void fails() { assertEquals(10, 11, "<b>so</b> & \\u001b[31mthus\\u001b[0m"); }

    @Test
    void throwsSomething() { throw new IllegalStateException("no database"); }

    @Test
    void passesWhenTriedAgain() { assertEquals(2, ++attempts); }

    @Test
    @Disabled("not on this machine")
    void isLeftOut() {}

    @ParameterizedTest
    @ValueSource(strings = {"plain", "tä/st", "a::b"})
    void names(String name) {}
}
"""
SUREFIRE_POM = """
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>org.example</groupId>
  <artifactId>cart</artifactId>
  <version>1</version>
  <properties>
    <maven.compiler.release>17</maven.compiler.release>
    <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>
  </properties>
  <dependencies>
    <dependency>
      <groupId>org.junit.jupiter</groupId>
      <artifactId>junit-jupiter</artifactId>
      <version>5.13.4</version>
    </dependency>
  </dependencies>
  <build>
    <plugins>
      <plugin><artifactId>maven-resources-plugin</artifactId><version>3.4.0</version></plugin>
      <plugin><artifactId>maven-compiler-plugin</artifactId><version>3.14.1</version></plugin>
      <plugin>
        <artifactId>maven-surefire-plugin</artifactId>
        <version>3.2.5</version>
        <configuration><rerunFailingTestsCount>1</rerunFailingTestsCount></configuration>
      </plugin>
    </plugins>
  </build>
</project>
""".lstrip()
