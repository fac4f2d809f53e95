#include "client_cli/tables/noise_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client_cli/flags/flags.h"
#include "client_cli/tables/table.h"
#include "optfarm/v1/measurement.pb.h"

namespace optfarm::client_cli {

std::string NoiseText(absl::Span<const v1::Measurement* const> measurements) {
  std::string text;
  for (const v1::Measurement* m : measurements) {
    if (!m->noisy()) continue;
    const std::string line = absl::StrCat(
        m->variant(), " on ", m->device(), ", ", ThreadsText(m->threads()),
        ": ", absl::StrJoin(m->noise_reasons(), " "));
    absl::StrAppend(&text, WrapText(PrintableLine(line), 2));
  }
  return text.empty() ? "" : absl::StrCat("\nNoisy:\n", text);
}

std::string ThreadsText(int threads) {
  return absl::StrCat(threads, threads == 1 ? " thread" : " threads");
}

}  // namespace optfarm::client_cli
