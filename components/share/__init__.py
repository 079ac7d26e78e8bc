"""Taking the text along: a link that opens it again, files, and the program that writes it."""
