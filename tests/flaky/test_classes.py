"""Where a class may stand, by its name alone."""

import pytest

from service.testhealth.reports import classes


@pytest.mark.parametrize(
    ("path", "classname", "holds"),
    [
        ("src/test/java/a/b/C.java", "a.b.C", True),
        ("src/test/java/a/b/C.java", "a.b.C$D", True),
        ("a/b/C.kt", "a.b.C", True),
        ("lib/a/b.py", "a.b.C", True),
        ("lib/a/b.py", "a.b", True),
        ("lib/a/b.ts", "a.b.C", False),
        ("xa/b/C.java", "a.b.C", False),
        ("a/b/D.java", "a.b.C", False),
        ("tests/Cart.php", "Cart", True),
        ("tests/Cart.php", "", False),
        ("tests/Cart.php", "$Cart", False),
        ("", "Cart", False),
        ("src/app/Cart.rs", "app::Cart", True),
        ("src/app/Cart.rs", "app/Cart", True),
        ("Makefile", "Makefile", True),
    ],
)
def test_a_class_may_stand_where_a_path_ends_as_its_name(path, classname, holds):
    assert classes.may_hold(path, classname) is holds


@pytest.mark.parametrize(
    ("classname", "expected"),
    [
        ("shop.CartTest", "src/test/java/shop/CartTest.java"),
        ("shop.CartTest$Totals", "src/test/java/shop/CartTest.java"),
        ("tests.test_cart", "tests/test_cart.py"),
        ("tests.test_cart.TestCart", "tests/test_cart.py"),
        ("Shop::Cart", "lib/Shop/Cart.rb"),
        ("Twice", ""),
        ("nowhere.Test", ""),
        ("", ""),
    ],
)
def test_a_class_is_found_where_one_file_may_hold_it(classname, expected):
    tree = classes.tree_of(
        [
            *("src/test/java/shop/CartTest.java", "tests/test_cart.py", "lib/Shop/Cart.rb"),
            *("a/Twice.kt", "b/Twice.kt", "workshop/CartTest.md", "README"),
        ]
    )
    assert tree.file_of(classname) == expected
