"""Model backends behind one port."""
