"""What others say of when pages changed, read and weighed before it is kept as a claim."""
