/* gossamer under a training loop of your own: one peer of a fleet that mixes
 * its parameters with its neighbours' by gossip.
 *
 *   gossamer_tensor tensors[] = {{"G", "weight", shape, 2}, ...};
 *   gossamer_peer* peer = gossamer_open(options, 4, tensors, n);
 *   ... write the first parameters to gossamer_parameters(peer) ...
 *   gossamer_start(peer);
 *   while (gossamer_wait(peer, -1) == GOSSAMER_TURN) {
 *     ... change the parameters: a step ...
 *     gossamer_mix(peer);
 *   }
 *   gossamer_close(peer);
 *
 * A process has one peer.  Its functions are for one thread at a time, but
 * gossamer_stop(), gossamer_leave() and gossamer_status_of(), which any thread
 * may call.  The runtime
 * changes the parameters between gossamer_mix() and the return of
 * gossamer_wait() that says it is the program's turn; the program changes them
 * otherwise, by additions or as it likes: nothing of either is lost.
 *
 * Functions return a negative gossamer_code and gossamer_error() says what is
 * wrong, where, and what to do.  The interface changes by additions only within
 * one GOSSAMER_ABI. */

#ifndef GOSSAMER_GOSSAMER_H_
#define GOSSAMER_GOSSAMER_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GOSSAMER_ABI 1
#define GOSSAMER_API __attribute__((visibility("default")))

typedef struct gossamer_peer gossamer_peer;

typedef enum gossamer_code {
  GOSSAMER_OK = 0,
  GOSSAMER_TURN = 1,  /* the parameters are the program's: make a step */
  GOSSAMER_OVER = 2,  /* the run is over, or this peer has left it */
  GOSSAMER_AGAIN = 3, /* the time is up; wait again */
  GOSSAMER_FAILED = -1,
  GOSSAMER_INVALID = -2, /* what was given cannot be used */
  GOSSAMER_BUSY = -3,    /* another thread is in a function of this peer */
  GOSSAMER_FORKED = -4,  /* this process is a fork of the peer's */
  GOSSAMER_STATE = -5    /* the program's state was not saved or loaded; the run
                            goes on: wait again */
} gossamer_code;

/* A tensor of a player, float32, row-major.  Tensors of a player come together,
 * in one order at all peers.  There are at most 16 players, with names of at
 * most 64 bytes. */
typedef struct gossamer_tensor {
  const char* player;
  const char* name;
  const int64_t* shape;
  size_t rank;
} gossamer_tensor;

/* The program's own state beside the parameters (optimizers, batch statistics),
 * as bytes: saved with every checkpoint, and given to peers that join.  Called
 * on the program's thread within gossamer_wait(), gossamer_mix() or
 * gossamer_close(); the round waits, and the other peers are answered
 * meanwhile.  Both return 0, or anything else if they fail.  `data` of save
 * stays valid until the next call. */
typedef struct gossamer_state {
  void* context;
  int (*save)(void* context, const void** data, size_t* size);
  int (*load)(void* context, const void* data, size_t size);
} gossamer_state;

typedef struct gossamer_status {
  uint64_t id;      /* of this peer, from 1; 0 before the first turn */
  uint64_t round;   /* of the turn in hand, from 1 */
  uint64_t rounds;  /* of the run */
  uint64_t seed;    /* of the run */
  uint32_t members; /* of the fleet now */
  uint32_t peers;   /* that founded it */
} gossamer_status;

/* GOSSAMER_ABI of the library, and its version, "0.1.0". */
GOSSAMER_API int gossamer_abi(void);
GOSSAMER_API const char* gossamer_version(void);

/* Options are those of gossamer-peer: "--topology", "127.0.0.1:7700",
 * "--config", "run.textproto"; the configuration's game is `caller {}`.  NULL
 * if they cannot be used; gossamer_error() says why. */
GOSSAMER_API gossamer_peer* gossamer_open(const char* const* options,
                                          size_t option_count,
                                          const gossamer_tensor* tensors,
                                          size_t tensor_count);
/* All tensors, one behind the other, in the order given; memory of the host
 * unless the program gives other. */
GOSSAMER_API float* gossamer_parameters(gossamer_peer* peer);
/* The number of values of all tensors. */
GOSSAMER_API size_t gossamer_size(const gossamer_peer* peer);
/* Before gossamer_start(): the parameters lie at `parameters`, memory of the
 * program for gossamer_size() values, which outlives the peer. */
GOSSAMER_API int gossamer_use_memory(gossamer_peer* peer, float* parameters);
/* The same of memory of the GPU `device`, numbered as CUDA does in this
 * process: the parameters are mixed where they lie.  The program's work on them
 * is done (cudaStreamSynchronize) before it calls gossamer_start() or
 * gossamer_mix() or, once it leaves, gossamer_wait() or gossamer_close(); the
 * runtime's is done when gossamer_wait() returns GOSSAMER_TURN or
 * GOSSAMER_OVER.  These functions may make the GPU the calling thread's current
 * one.  GOSSAMER_INVALID: this build, this machine or the run's codec has no
 * place for them there, and they lie where they did. */
GOSSAMER_API int gossamer_use_cuda_memory(gossamer_peer* peer,
                                          float* parameters, int device);
/* Before gossamer_start(); `state` is copied. */
GOSSAMER_API int gossamer_set_state(gossamer_peer* peer,
                                    const gossamer_state* state);

/* Registers with the topology service, on threads of the library's own. */
GOSSAMER_API int gossamer_start(gossamer_peer* peer);
/* Waits for the program's turn: until what is due of the neighbours has come
 * and is mixed.  `milliseconds` at most; below 0 without a limit. */
GOSSAMER_API int gossamer_wait(gossamer_peer* peer, int milliseconds);
/* The program's turn ends. */
GOSSAMER_API int gossamer_mix(gossamer_peer* peer);
/* The losses of the turn in hand, one of each player, for people to look at;
 * NaN: not known. */
GOSSAMER_API int gossamer_losses(gossamer_peer* peer, const double* losses,
                                 size_t count);
GOSSAMER_API int gossamer_status_of(gossamer_peer* peer,
                                    gossamer_status* status);

/* Asks the whole fleet to stop at a round that all agree on. */
GOSSAMER_API int gossamer_stop(gossamer_peer* peer);
/* This peer leaves in good order and the others go on.  The turn in hand ends
 * with gossamer_mix(), or with gossamer_wait() as it is; no other comes: wait
 * for GOSSAMER_OVER. */
GOSSAMER_API int gossamer_leave(gossamer_peer* peer);
/* Leaves, if the run is not over, and frees the peer.  NULL is allowed. */
GOSSAMER_API void gossamer_close(gossamer_peer* peer);

/* The last error of this thread. */
GOSSAMER_API const char* gossamer_error(void);

#ifdef __cplusplus
}
#endif

#endif /* GOSSAMER_GOSSAMER_H_ */
