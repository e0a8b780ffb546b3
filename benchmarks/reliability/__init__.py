"""How the program takes what goes wrong: kills, damaged files, hostile files, wrong commands."""
