// Student's distribution, by which few values are judged.

#ifndef OPTFARM_SERVER_SERVICES_STUDENT_H_
#define OPTFARM_SERVER_SERVICES_STUDENT_H_

namespace optfarm::server {

// The value that is not exceeded with probability `p`, within 1e-6 of itself.
// REQUIRES: 0.5 < p <= 1 - 1e-6; degrees >= 1.
double StudentQuantile(double p, int degrees);

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_SERVICES_STUDENT_H_
