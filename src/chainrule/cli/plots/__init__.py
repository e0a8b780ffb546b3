"""Figures, one file per family. Each function draws a file and returns the numbers it drew."""
