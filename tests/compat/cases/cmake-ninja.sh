# SPDX-License-Identifier: Apache-2.0
# title: cmake configures and ninja builds
# needs: cmake ninja gcc
printf 'cmake_minimum_required(VERSION 3.13)\nproject(p C)\nadd_executable(p p.c)\nenable_testing()\nadd_test(t p)\n' > CMakeLists.txt
echo 'int main(void) { return 0; }' > p.c
cmake -G Ninja -B b . > /dev/null && ninja -C b | tail -1 | sed 's/.*Link/Link/' && cd b && ctest 2>&1 | grep 'tests passed'
