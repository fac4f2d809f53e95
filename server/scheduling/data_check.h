// The sources of a job's data, checked one by one at the door.

#ifndef OPTFARM_SERVER_SCHEDULING_DATA_CHECK_H_
#define OPTFARM_SERVER_SCHEDULING_DATA_CHECK_H_

#include "absl/status/status.h"
#include "optfarm/v1/jobs.pb.h"

namespace optfarm::server {

// Whether `data` is as jobs.proto says. Its deprecated fields are not looked
// at.
// ERRORS: InvalidArgument naming the field, the value and what is allowed.
absl::Status CheckDataset(const v1::Dataset& data);

// Whether any source feeds an input.
bool HasSamples(const v1::Dataset& data);

// Puts sources, and the files of each, into one order, so that equal data have
// equal bytes.
void SortDataset(v1::Dataset* data);

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_SCHEDULING_DATA_CHECK_H_
