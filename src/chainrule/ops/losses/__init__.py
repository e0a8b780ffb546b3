"""What training minimizes: cross-entropy and its fused forms, likelihoods, distances, losses of pairs."""
