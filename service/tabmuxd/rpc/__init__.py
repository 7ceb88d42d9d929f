"""The gRPC edge: who calls, what is asked, one domain call, what is answered."""
