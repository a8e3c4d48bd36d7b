"""Tests of the library: what its calls do in every case, and how its parts keep their promises."""
