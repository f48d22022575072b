// gossamer-peer, and gossamer-peer-networks: one text, linked without libtorch
// and with it.

#include "runtime/daemon/peer_main.h"

int main(int argc, char** argv) { return gossamer::PeerMain(argc, argv); }
