"""Included by workers that are to give up soon, on an uncertain commit and on a broker that does not confirm."""

from effectonce.app import copies
from effectonce.stores.sql import asking

asking.ASK_FOR = 1.0
copies.PATIENCE = 1.0
