// StringToHashBucketFast: FarmHash's Fingerprint64, which never changes. A file
// of its own because the library may be left out (OPTFARM_EXTRA_OPS).

#include <farmhash.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/reference/families.h"
#include "engine/runtime/reference/text/text_function.h"

namespace optfarm::runtime {
namespace {

absl::StatusOr<std::unique_ptr<Kernel>> MakeFastBucket(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const int64_t buckets,
                           graph::GetInt(node, "num_buckets"));
  if (buckets < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("num_buckets must be at least 1, but is ", buckets));
  }
  return MakeTextFunction<int64_t>(
      [buckets](const std::string& in, int64_t* out) {
        *out = static_cast<int64_t>(util::Fingerprint64(in.data(), in.size()) %
                                    static_cast<uint64_t>(buckets));
        return absl::OkStatus();
      });
}

}  // namespace

void AddFarmHashKernels(KernelCatalog* catalog) {
  catalog->Add("StringToHashBucketFast", MakeFastBucket);
}

}  // namespace optfarm::runtime
