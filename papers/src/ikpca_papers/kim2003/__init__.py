"""Kim, Franz, Schölkopf 2003: the Kernel Hebbian Algorithm."""
