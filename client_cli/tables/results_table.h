// The table a job ends with: one row for each of its verdicts, with the numbers
// of the measurement that the verdict is about.

#ifndef OPTFARM_CLIENT_CLI_TABLES_RESULTS_TABLE_H_
#define OPTFARM_CLIENT_CLI_TABLES_RESULTS_TABLE_H_

#include <string>

#include "client_cli/tables/table.h"

namespace optfarm::v1 {
class Job;
class ShippingVerdict;
}  // namespace optfarm::v1

namespace optfarm::client_cli {

// Rows in the order the numbers were measured: device, thread count, then the
// original before the recipe's result. A variant that no device measured has
// one row with its size and accuracy. Column names are stable:
//   variant device processor threads file_size_bytes first_us median_us mad_us
//   peak_memory_bytes speedup top1_percent top5_percent top1_agreement runs
//   noisy verdict verdict_text
// In the wide text form top-1/top-5 give way to the agreement where there were
// no labels, and runs and noisy are left out. The other text form fits into 80
// columns: it has no processor, first run, spread, memory and top-5, cuts long
// names, and has the verdict's answer in place of its text.
Table MakeResultsTable(const v1::Job& job, OutputFormat format);

// The verdict that matters most: the first "no", else the first "unclear", else
// the first "yes". Null without any.
const v1::ShippingVerdict* MainVerdict(const v1::Job& job);

// "int8 on pi4, 4 threads: no: 1.58x slower than float here".
std::string VerdictLine(const v1::ShippingVerdict& verdict);

// "Intel(R) Xeon(R) CPU E5-2680 v4 @ 2.40GHz" -> "Intel Xeon E5-2680 v4".
std::string ShortProcessorName(const std::string& cpu_model);

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_TABLES_RESULTS_TABLE_H_
