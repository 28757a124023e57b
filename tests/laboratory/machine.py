"""Producers that a machine has: compilers, and interpreters of other languages."""

from collections.abc import Mapping

from tests.laboratory.producer import Change, Home, Producer, Scene

GO_MODULE = "module example.org/shop\n\ngo 1.19\n"
GO = """package cart

import "testing"

func TestPasses(t *testing.T)            {}
func TestPassesAndIsRenamed(t *testing.T) {}
func TestFailsAlways(t *testing.T)       { t.Error("10 != 11") }
func TestIsSkipped(t *testing.T)         { t.Skip("not on this machine") }
func TestErrorsAlways(t *testing.T)      { t.Fatal("no database") }
func TestGroupPasses(t *testing.T)       { t.Run("passes", func(t *testing.T) {}) }
"""
GO_BESIDE = """package tax

import (
	"os"
	"testing"
	"time"
)

func TestPassesBeside(t *testing.T) {{
	if false {{
		os.Exit(3)
		time.Sleep(1)
	}}
	{}
}}
"""
GO_SLEEPS = 'os.WriteFile("../started", nil, 0o600)\n\ttime.Sleep(60 * time.Second)'


def _go(command: tuple[str, ...], reports: str, *, has_retries: bool = False) -> Producer:
    return Producer(
        Home.MACHINE,
        {
            "go.mod": GO_MODULE,
            "cart/cart_test.go": GO,
            "tax/tax_test.go": GO_BESIDE.format("_ = t"),
        },
        command,
        reports,
        {
            Scene.CRASH: Change({"tax/tax_test.go": GO_BESIDE.format("os.Exit(3)")}),
            Scene.INTERRUPTED: Change({"tax/tax_test.go": GO_BESIDE.format(GO_SLEEPS)}),
            Scene.UNLOADED: Change({"tax/tax_test.go": GO_BESIDE.format('var _ int = "none"')}),
        },
        has_retries=has_retries,
    )


CTEST_CASE = 'add_test(NAME {} COMMAND sh -c "{}")\n'
CTEST_HEAD = "cmake_minimum_required(VERSION 3.22)\nproject(shop NONE)\nenable_testing()\n"


def _ctest(beside: str) -> dict[str, str]:
    cases = {
        "passes": "true",
        "passes_and_is_renamed": "true",
        "fails_always": "test 10 = 11",
        "errors_always": "kill -SEGV $$",
        "is_skipped": "exit 77",
        "passes_beside": beside,
    }
    lines = [CTEST_CASE.format(name, does) for name, does in cases.items()]
    skip = "set_tests_properties(is_skipped PROPERTIES SKIP_RETURN_CODE 77)\n"
    return {"CMakeLists.txt": CTEST_HEAD + "".join(lines) + skip}


GTEST = """
#include <gtest/gtest.h>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <unistd.h>
TEST(Cart, Passes) {}
TEST(Cart, PassesAndIsRenamed) {}
TEST(Cart, FailsAlways) { EXPECT_EQ(10, 11); }
TEST(Cart, ErrorsAlways) { throw std::runtime_error("no database"); }
TEST(Cart, IsSkipped) { GTEST_SKIP(); }
TEST(Tax, PassesBeside) { %s }
"""
C_SLEEPS = 'std::fclose(std::fopen("started", "w")); sleep(60);'
CATCH = """
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <unistd.h>
TEST_CASE("passes") { REQUIRE(true); }
TEST_CASE("passes and is renamed") { REQUIRE(true); }
TEST_CASE("fails always") { REQUIRE(10 == 11); }
TEST_CASE("errors always") { throw std::runtime_error("no database"); }
TEST_CASE("passes beside") { %s REQUIRE(true); }
"""
BOOST = """
#define BOOST_TEST_MODULE shop
#include <boost/test/included/unit_test.hpp>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <unistd.h>
BOOST_AUTO_TEST_CASE(passes) { BOOST_TEST(true); }
BOOST_AUTO_TEST_CASE(passes_and_is_renamed) { BOOST_TEST(true); }
BOOST_AUTO_TEST_CASE(fails_always) { BOOST_TEST(10 == 11); }
BOOST_AUTO_TEST_CASE(errors_always) { throw std::runtime_error("no database"); }
BOOST_AUTO_TEST_CASE(is_skipped, *boost::unit_test::disabled()) { BOOST_TEST(true); }
BOOST_AUTO_TEST_CASE(passes_beside) { %s BOOST_TEST(true); }
"""


def _compiled(sample: str, libraries: tuple[str, ...], options: tuple[str, ...]) -> Producer:
    """A test program in C++; one that is not built writes no report, so that is no scene."""
    return Producer(
        Home.MACHINE,
        {"shop.cc": sample % ""},
        ("./shop", *options),
        "report.xml",
        {
            Scene.CRASH: Change({"shop.cc": sample % "std::_Exit(3);"}),
            Scene.INTERRUPTED: Change({"shop.cc": sample % C_SLEEPS}),
        },
        ("g++", "-std=c++17", "-O0", "shop.cc", "-o", "shop", *libraries),
    )


RSPEC = """
RSpec.describe 'cart' do
  it('passes') {}
  it('passes and is renamed') {}
  it('fails always') { expect_equal 10, 11 }
  it('errors always') { raise 'no database' }
  it('is skipped', skip: 'not on this machine') {}
end

def expect_equal(one, other)
  raise RSpec::Core::MultipleExceptionError unless one == other
end
"""
RSPEC_BESIDE = "{}RSpec.describe 'tax' do\n  it('passes beside') {{ {} }}\nend\n"

PHP = """<?php
use PHPUnit\\Framework\\TestCase;
final class CartTest extends TestCase {
    public function testPasses(): void { $this->assertTrue(true); }
    public function testPassesAndIsRenamed(): void { $this->assertTrue(true); }
    public function testFailsAlways(): void { $this->assertSame(10, 11); }
    public function testErrorsAlways(): void { throw new RuntimeException('no database'); }
    public function testIsSkipped(): void { $this->markTestSkipped('not on this machine'); }
}
"""
PHP_BESIDE = """<?php
use PHPUnit\\Framework\\TestCase;
%s
final class TaxTest extends TestCase {
    public function testPassesBeside(): void { %s $this->assertTrue(true); }
}
"""

LUA = """
describe("cart", function()
  it("passes", function() end)
  it("passes and is renamed", function() end)
  it("fails always", function() assert.are.equal(10, 11) end)
  it("errors always", function() error({ message = "no database" }) end)
  pending("is skipped", function() end)
end)
"""
LUA_BESIDE = '{}describe("tax", function()\n  it("passes beside", function() {} end)\nend)\n'


def _files(path: str, texts: Mapping[Scene, str]) -> dict[Scene, Change]:
    return {scene: Change({path: text}) for scene, text in texts.items()}


PRODUCERS = {
    "go-test-json": _go(("sh", "-c", "go test -json ./... > report.jsonl 2>&1"), "report.jsonl"),
    "gotestsum": _go(("gotestsum", "--junitfile", "report.xml", "./..."), "report.xml"),
    "ctest": Producer(
        Home.MACHINE,
        _ctest("true"),
        ("ctest", "--output-junit", "report.xml"),
        "report.xml",
        {
            Scene.INTERRUPTED: Change(_ctest("touch started; sleep 60")),
            Scene.REVERSED: Change(options=("--schedule-random",)),
            Scene.SHARD_1: Change(options=("-I", "1,,2")),
            Scene.SHARD_2: Change(options=("-I", "2,,2")),
        },
        ("cmake", "."),
    ),
    "googletest": _compiled(
        GTEST,
        ("-lgtest", "-lgtest_main", "-lpthread"),
        ("--gtest_output=xml:report.xml",),
    ),
    "catch2": _compiled(CATCH, (), ("-r", "junit", "-o", "report.xml")),
    "boost-test": _compiled(
        BOOST, (), ("--log_format=JUNIT", "--log_sink=report.xml", "--log_level=all")
    ),
    "rspec": Producer(
        Home.MACHINE,
        {"spec/cart_spec.rb": RSPEC, "spec/tax_spec.rb": RSPEC_BESIDE.format("", "")},
        (
            *("rspec", "-r", "rspec_junit_formatter", "--format", "RspecJunitFormatter"),
            *("--out", "report.xml", "spec"),
        ),
        "report.xml",
        {
            **_files(
                "spec/tax_spec.rb",
                {
                    Scene.CRASH: RSPEC_BESIDE.format("", "exit! 3"),
                    Scene.INTERRUPTED: RSPEC_BESIDE.format(
                        "", "File.write 'started', ''; sleep 60"
                    ),
                    Scene.UNLOADED: RSPEC_BESIDE.format("require 'no_such_file'\n", ""),
                },
            ),
            Scene.REVERSED: Change(options=("--order", "rand:7")),
        },
    ),
    "phpunit": Producer(
        Home.MACHINE,
        {"tests/CartTest.php": PHP, "tests/TaxTest.php": PHP_BESIDE % ("", "")},
        ("phpunit", "--no-configuration", "--log-junit", "report.xml", "tests"),
        "report.xml",
        {
            **_files(
                "tests/TaxTest.php",
                {
                    Scene.CRASH: PHP_BESIDE % ("", "exit(3);"),
                    Scene.INTERRUPTED: PHP_BESIDE % ("", "touch('started'); sleep(60);"),
                    Scene.UNLOADED: PHP_BESIDE % ("require 'no-such-file.php';", ""),
                },
            ),
            Scene.REVERSED: Change(options=("--order-by=reverse",)),
        },
    ),
    "busted": Producer(
        Home.MACHINE,
        {"spec/cart_spec.lua": LUA, "spec/tax_spec.lua": LUA_BESIDE.format("", "")},
        ("busted", "-o", "junit", "-Xoutput", "report.xml"),
        "report.xml",
        {
            **_files(
                "spec/tax_spec.lua",
                {
                    Scene.CRASH: LUA_BESIDE.format("", "os.exit(3)"),
                    Scene.INTERRUPTED: LUA_BESIDE.format(
                        "", "io.open('started', 'w'):close() os.execute('sleep 60')"
                    ),
                    Scene.UNLOADED: LUA_BESIDE.format("require('no_such_module')\n", ""),
                },
            ),
            Scene.REVERSED: Change(options=("--shuffle", "--seed=7")),
        },
    ),
}
