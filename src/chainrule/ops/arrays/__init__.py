"""What any array library has, with gradients: elementwise functions, reductions, shapes, indexing, matmul."""
