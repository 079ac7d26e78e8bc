from components.labels import decimal, percent, power


def test_a_negative_number_has_a_real_minus():
    assert decimal(-0.16997, 4) == "−0.1700"
    assert decimal(2, 2) == "2.00"
    assert decimal(-0.00001, 4) == "0.0000"


def test_a_number_far_from_one_is_written_as_a_power():
    assert power(-1.46e-4) == "−1.5 × 10⁻⁴"
    assert power(3e12) == "3.0 × 10¹²"
    assert power(0.0) == "0"


def test_a_probability_has_as_many_digits_as_it_takes():
    assert [percent(p) for p in (0, 0.00001, 0.0005, 0.032, 0.41)] == [
        "0\u00a0%",
        "< 0.01\u00a0%",
        "0.05\u00a0%",
        "3.2\u00a0%",
        "41\u00a0%",
    ]
