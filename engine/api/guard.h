// The border to C: what is inside returns absl::Status and may throw, what is
// outside gets an optfarm_status.

#ifndef OPTFARM_ENGINE_API_GUARD_H_
#define OPTFARM_ENGINE_API_GUARD_H_

#include <exception>
#include <new>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "engine/api/c_api.h"

namespace optfarm::api {

// NULL for OK. When there is no memory for a status, one that was there from
// the start.
optfarm_status* ToC(const absl::Status& status) noexcept;
optfarm_status* OutOfMemory() noexcept;
optfarm_status* Unexpected(const char* what) noexcept;

absl::Status MissingArgument(absl::string_view name);

// Calls `body`, which returns an absl::Status, and lets no exception out.
template <typename Body>
optfarm_status* Guard(Body&& body) noexcept {
  try {
    return ToC(std::forward<Body>(body)());
  } catch (const std::bad_alloc&) {
    return OutOfMemory();
  } catch (const std::exception& error) {
    return Unexpected(error.what());
  } catch (...) {
    return Unexpected("an exception of an unknown kind");
  }
}

}  // namespace optfarm::api

#endif  // OPTFARM_ENGINE_API_GUARD_H_
