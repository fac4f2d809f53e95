#include "base/status_macros.h"

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace optfarm {

absl::Status Annotate(const absl::Status& status, absl::string_view what) {
  if (status.ok()) return status;
  absl::Status result(status.code(),
                      absl::StrCat(what, ": ", status.message()));
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) {
    result.SetPayload(url, payload);
  });
  return result;
}

}  // namespace optfarm
