#include "server/access/method_bounds.h"

#include "rpc/channel.h"

namespace optfarm::server {
namespace {

constexpr size_t kMebibyte = size_t{1} << 20;

struct MethodBounds {
  absl::string_view method;
  rpc::MessageBounds bounds;
};

// All others are questions: a name, a filter, a page.
constexpr MethodBounds kBounds[] = {
    // 20000 digests.
    {"optfarm.v1.ModelService.FindMissing", {4 * kMebibyte, 16 * kMebibyte}},
    // A piece of a file.
    {"optfarm.v1.ModelService.Upload", {6 * kMebibyte, 7 * kMebibyte}},
    // A job that lists 20000 files of calibration data.
    {"optfarm.v1.JobService.SubmitJob", {8 * kMebibyte, 48 * kMebibyte}},
    // The same for a tune.
    {"optfarm.v1.TuneService.CreateTune", {8 * kMebibyte, 48 * kMebibyte}},
    // The reports of all that a worker holds.
    {"optfarm.v1.WorkService.Synchronize",
     {rpc::kMaxMessageBytes, 144 * kMebibyte}},
};

}  // namespace

rpc::MessageBounds BoundsOf(absl::string_view method) {
  for (const MethodBounds& one : kBounds) {
    if (one.method == method) return one.bounds;
  }
  return {kMebibyte / 4, 8 * kMebibyte};
}

}  // namespace optfarm::server
