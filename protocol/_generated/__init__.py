"""Written by ringleader.protocol.codegen; do not edit."""
