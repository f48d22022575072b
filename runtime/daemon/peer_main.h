// The command line of gossamer-peer.

#ifndef GOSSAMER_RUNTIME_DAEMON_PEER_MAIN_H_
#define GOSSAMER_RUNTIME_DAEMON_PEER_MAIN_H_

namespace gossamer {

// Returns the exit status.  Networks bring libtorch along, which costs a
// process 110 MB and a quarter of a second before its first line: a program
// without it becomes gossamer-peer-networks, which lies beside it, for a run
// that needs them.
int PeerMain(int argc, char** argv);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_DAEMON_PEER_MAIN_H_
