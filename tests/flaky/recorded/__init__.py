"""Reports that real runners wrote over sample tests of ours, and the script that records them."""
