// The verdicts of a job: which of its variants are worth shipping on which
// device. The server and `optctl run` both decide them here.

#ifndef OPTFARM_ENGINE_VERDICT_JOB_VERDICTS_H_
#define OPTFARM_ENGINE_VERDICT_JOB_VERDICTS_H_

#include <vector>

#include "optfarm/v1/jobs.pb.h"

namespace optfarm::verdict {

// From the job's report, measurements and gates. One verdict for each variant,
// device and thread count, in the order that the results table has: device by
// device as they were measured, then by thread count, the original before the
// recipe's result; before them the variants that no device measured. None
// without report and measurements.
std::vector<v1::ShippingVerdict> DecideVerdicts(const v1::Job& job);

// Fills in job.verdicts unless they are there, or the job has not ended. A
// stored job has none, and neither has one that comes from an older server.
void AddVerdicts(v1::Job& job);

}  // namespace optfarm::verdict

#endif  // OPTFARM_ENGINE_VERDICT_JOB_VERDICTS_H_
