"""What networks are made of: linear maps, activations, norms, dropout, attention, rotary positions, recurrent cells."""
