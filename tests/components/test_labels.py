from components.labels import decimal, decimals, percent, power, signed


def test_a_negative_number_has_a_real_minus():
    assert decimal(-0.16997, 4) == "−0.1700"
    assert decimal(2, 2) == "2.00"
    assert decimal(-0.00001, 4) == "0.0000"


def test_a_number_far_from_one_is_written_as_a_power():
    assert power(-1.46e-4) == "−1.5 × 10⁻⁴"
    assert power(3e12) == "3.0 × 10¹²"
    assert power(0.0) == "0"


def test_a_probability_has_as_many_digits_as_it_takes():
    assert [percent(p) for p in (0, 0.00001, 0.0005, 0.032, 0.41, 0.994, 0.998, 0.9997, 0.99999, 1)] == [
        "0\u00a0%",
        "< 0.01\u00a0%",
        "0.05\u00a0%",
        "3.2\u00a0%",
        "41\u00a0%",
        "99\u00a0%",
        "99.8\u00a0%",
        "99.97\u00a0%",
        "> 99.99\u00a0%",
        "100\u00a0%",
    ]


def test_a_sign_stands_only_before_what_is_not_zero():
    assert [signed(value) for value in (1.234, -1.234, 0.001, -0.001)] == ["+1.23", "−1.23", "0.00", "0.00"]


def test_numbers_side_by_side_have_as_many_decimals_as_the_largest_needs() -> None:
    assert [decimals([0.1 * size, -size]) for size in (123.0, 1.2, 0.12, 0.05, 0.0034, 1e-9)] == [2, 2, 2, 3, 4, 6]
    assert decimals([]) == decimals([0.0]) == 2
    assert [signed(value, decimals([-0.0034])) for value in (-0.0034, 0.00051)] == ["−0.0034", "+0.0005"]
