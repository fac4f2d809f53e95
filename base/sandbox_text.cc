// What a sandbox does, in words. Apart from the sandbox itself, which
// optfarm-engine enters without a library but the standard ones.

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/sandbox.h"

namespace optfarm {

std::string SandboxForce::ToString() const {
  return absl::StrCat(
      landlock > 0 ? absl::StrCat("Landlock ", landlock) : "no Landlock",
      seccomp ? ", seccomp" : ", no seccomp",
      no_network ? ", a network namespace without a network"
                 : ", no network namespace",
      namespaces ? ", namespaces for users, processes and mounts" : "");
}

std::string SandboxForce::Missing() const {
  std::vector<std::string> missing;
  if (landlock == 0) missing.push_back("Landlock");
  if (!seccomp) missing.push_back("seccomp");
  if (!namespaces)
    missing.push_back("namespaces for users, processes and mounts");
  return absl::StrJoin(missing, ", ");
}

}  // namespace optfarm
