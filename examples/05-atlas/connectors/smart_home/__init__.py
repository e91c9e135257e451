"""Devices by MQTT."""
