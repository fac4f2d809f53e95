// Which measurements are noisy, and why, in sentences.

#ifndef OPTFARM_CLIENT_CLI_TABLES_NOISE_TEXT_H_
#define OPTFARM_CLIENT_CLI_TABLES_NOISE_TEXT_H_

#include <string>

#include "absl/types/span.h"

namespace optfarm::v1 {
class Measurement;
}  // namespace optfarm::v1

namespace optfarm::client_cli {

// A paragraph under the heading "Noisy:", after an empty line; "" when all are
// quiet.
std::string NoiseText(absl::Span<const v1::Measurement* const> measurements);

// "1 thread", "4 threads".
std::string ThreadsText(int threads);

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_TABLES_NOISE_TEXT_H_
