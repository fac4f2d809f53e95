// The flags that describe a job's data, and the message they become. The one
// place that takes FILE:MEMBER apart.

#ifndef OPTFARM_CLIENT_CLI_JOBS_DATA_FLAGS_H_
#define OPTFARM_CLIENT_CLI_JOBS_DATA_FLAGS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/optimize/samples/local_data.h"

namespace optfarm::client_cli {

// As typed.
struct DataFlags {
  // Each DIR, FILE, NAME=FILE or NAME=FILE:MEMBER.
  std::vector<std::string> calibration;
  // Each NAME=LAYOUT or LAYOUT, for one input's array or for all of them;
  // LAYOUT is "samples" or "constant".
  std::vector<std::string> layouts;
  // FILE or FILE:MEMBER; empty: none.
  std::string labels;
  int64_t labels_offset = 0;
  std::optional<double> input_mean;
  std::optional<double> input_std;
};

struct FileMember {
  std::string file;
  // Empty: none is named.
  std::string member;
};

// "FILE:MEMBER": what stands behind the last colon is a member when there is
// no file of the whole name but one of the name before the colon.
FileMember SplitMember(const std::string& text);

// Digests are left out. Adds to `remarks` what the user should know, one
// sentence each.
// ERRORS: InvalidArgument or NotFound that names the flag, its value and what
// is wrong with it.
absl::StatusOr<optimize::LocalData> ReadDataFlags(
    const DataFlags& flags, std::vector<std::string>* remarks);

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_JOBS_DATA_FLAGS_H_
