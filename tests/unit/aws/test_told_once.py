"""A refusal that lasts is told once."""

from __future__ import annotations

from kerf.adapters.aws.session import AwsError
from kerf.adapters.aws.told_once import ToldOnce


def test_a_refusal_is_news_until_it_ends_and_when_it_comes_again() -> None:
    told = ToldOnce()
    refused, otherwise = AwsError("get_products", "Denied", "id 1"), AwsError("get_products", "Throttling", "slow")
    assert told.news([refused]) == [refused]
    assert told.news([AwsError("get_products", "Denied", "id 2")]) == [], "EC2 puts another message into each"
    assert told.news([otherwise]) == [otherwise]
    assert told.news([]) == []
    assert told.news([otherwise]) == [otherwise]


def test_of_many_refusals_at_a_time_each_is_told() -> None:
    told = ToldOnce()
    images, subnets = AwsError("describe_images", "Denied", ""), AwsError("describe_subnets", "Denied", "")
    assert told.news([images, images]) == [images]
    assert told.news([images, subnets]) == [subnets]
