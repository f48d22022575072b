// Early return on absl::Status errors, in functions and in coroutines.
//
// Debian's Abseil has no such macros.  They know nothing of what failed: an
// error that needs context gets it where it is made.

#ifndef GOSSAMER_ALGORITHMS_BASE_STATUS_MACROS_H_
#define GOSSAMER_ALGORITHMS_BASE_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define GOSSAMER_STATUS_CONCAT_INNER(a, b) a##b
#define GOSSAMER_STATUS_CONCAT(a, b) GOSSAMER_STATUS_CONCAT_INNER(a, b)

#define GOSSAMER_RETURN_IF_ERROR(expr)                 \
  do {                                                 \
    absl::Status gossamer_status = (expr);             \
    if (!gossamer_status.ok()) return gossamer_status; \
  } while (false)

#define GOSSAMER_CO_RETURN_IF_ERROR(expr)                 \
  do {                                                    \
    absl::Status gossamer_status = (expr);                \
    if (!gossamer_status.ok()) co_return gossamer_status; \
  } while (false)

#define GOSSAMER_ASSIGN_OR_RETURN(lhs, expr) \
  GOSSAMER_ASSIGN_OR_RETURN_INNER(           \
      GOSSAMER_STATUS_CONCAT(gossamer_statusor, __LINE__), lhs, expr)
#define GOSSAMER_ASSIGN_OR_RETURN_INNER(tmp, lhs, expr) \
  auto tmp = (expr);                                    \
  if (!tmp.ok()) return std::move(tmp).status();        \
  lhs = std::move(tmp).value()

#endif  // GOSSAMER_ALGORITHMS_BASE_STATUS_MACROS_H_
