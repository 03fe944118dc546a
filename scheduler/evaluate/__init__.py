"""Simulators and counterfactuals: policies before a known history."""
