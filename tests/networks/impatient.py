"""Included by workers that are to give up soon: they ask about an uncertain commit for a second instead of ten."""

from effectonce.stores.sql import work

work.ASK_FOR = 1.0
