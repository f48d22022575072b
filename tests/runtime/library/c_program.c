/* A peer in C99, by nothing but the C interface: makes steps of known length, has
 * a state that cannot be saved at first, and a thread too many. */

#include <gossamer/gossamer.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static int saves = 0;
static uint64_t steps = 0;

static int Save(void* context, const void** data, size_t* size) {
  (void)context;
  *data = &steps;
  *size = sizeof(steps);
  return ++saves == 1;
}

static int Load(void* context, const void* data, size_t size) {
  (void)context;
  (void)data;
  return size != sizeof(steps);
}

static void* Wait(void* peer) {
  int code = GOSSAMER_BUSY; /* while main() looks */
  while (code == GOSSAMER_BUSY) code = gossamer_wait(peer, -1);
  if (code != GOSSAMER_TURN) exit(4);
  return NULL;
}

int main(int argc, char** argv) {
  const int64_t shape[] = {2, 3};
  const gossamer_tensor tensor = {"G", "w", shape, 2};
  const gossamer_state state = {NULL, Save, Load};
  const double loss = 0.5;
  if (gossamer_abi() != GOSSAMER_ABI) return 2;
  gossamer_peer* peer = gossamer_open((const char* const*)(argv + 1),
                                      (size_t)(argc - 1), &tensor, 1);
  if (peer == NULL) {
    fprintf(stderr, "%s\n", gossamer_error());
    return 2;
  }
  float* parameters = gossamer_parameters(peer);
  for (size_t i = 0; i < gossamer_size(peer); ++i) parameters[i] = 0;
  gossamer_set_state(peer, &state);
  gossamer_start(peer);

  /* The fleet has not begun: one thread waits, and another is refused. */
  pthread_t waiting;
  pthread_create(&waiting, NULL, Wait, peer);
  int code = GOSSAMER_AGAIN;
  while (code == GOSSAMER_AGAIN) code = gossamer_wait(peer, 0);
  printf("%s: %s\n", code == GOSSAMER_BUSY ? "busy" : "not busy",
         gossamer_error());
  fflush(stdout);
  pthread_join(waiting, NULL);

  code = GOSSAMER_TURN;
  while (code == GOSSAMER_TURN || code == GOSSAMER_STATE) {
    if (code == GOSSAMER_STATE) {
      printf("state: %s\n", gossamer_error());
    } else {
      gossamer_status status;
      gossamer_status_of(peer, &status);
      for (size_t i = 0; i < gossamer_size(peer); ++i) {
        parameters[i] += (float)status.id / 64;
      }
      ++steps;
      gossamer_losses(peer, &loss, 1);
      gossamer_mix(peer);
    }
    code = gossamer_wait(peer, -1);
  }
  if (code != GOSSAMER_OVER) {
    fprintf(stderr, "%s\n", gossamer_error());
    return 1;
  }
  printf("steps %d value %.9g\n", (int)steps, parameters[5]);
  gossamer_close(peer);
  return 0;
}
