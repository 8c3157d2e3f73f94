package main

import (
	"github.com/IBM/sarama"

	"kproto/tests/clients/drivers/contract"
)

func createTopic(r *run) error {
	return withAdmin(r, func(admin sarama.ClusterAdmin) error {
		topic := &sarama.TopicDetail{NumPartitions: 3, ReplicationFactor: 1}
		if err := admin.CreateTopic(r.Name, topic, false); err != nil {
			return err
		}
		var partitions int32
		err := contract.WaitUntil("the topic", func() (bool, error) {
			topics, err := admin.ListTopics()
			partitions = topics[r.Name].NumPartitions
			return partitions > 0, err
		})
		if err != nil {
			return err
		}
		r.Report("partitions", partitions)
		return reportCode(r, "again", admin.CreateTopic(r.Name, topic, false))
	})
}

func listGroups(r *run) error {
	return withAdmin(r, func(admin sarama.ClusterAdmin) error {
		if err := commit(r, 1); err != nil {
			return err
		}
		return reportListed(admin, r)
	})
}

func reportListed(admin sarama.ClusterAdmin, r *run) error {
	groups, err := admin.ListConsumerGroups()
	_, listed := groups[r.Name]
	r.Report("listed", listed)
	return err
}

func describeGroup(r *run) error {
	return withAdmin(r, func(admin sarama.ClusterAdmin) error {
		err := contract.WhileMember(scenarioMember, r, 2, func() error {
			group, err := waitForMembers(admin, r, 1)
			if err != nil {
				return err
			}
			r.Report("state", group.State)
			r.Report("members", len(group.Members))
			for _, member := range group.Members {
				assignment, err := member.GetMemberAssignment()
				if err != nil {
					return err
				}
				r.Report("assigned", contract.Sorted(assignment.Topics[r.Name]))
			}
			return nil
		})
		if err != nil {
			return err
		}
		group, err := waitForMembers(admin, r, 0)
		if err == nil {
			r.Report("then", group.State)
		}
		return err
	})
}

// waitForMembers describes the group until it has this many members.
func waitForMembers(admin sarama.ClusterAdmin, r *run, count int) (*sarama.GroupDescription, error) {
	var group *sarama.GroupDescription
	err := contract.WaitUntil("the group's members", func() (bool, error) {
		groups, err := admin.DescribeConsumerGroups([]string{r.Name})
		if err != nil {
			return false, err
		}
		group = groups[0]
		return len(group.Members) == count, nil
	})
	return group, err
}

func deleteGroup(r *run) error {
	return withAdmin(r, func(admin sarama.ClusterAdmin) error {
		if err := commit(r, 1); err != nil {
			return err
		}
		reportDeletion := func(result string) error { return reportCode(r, result, admin.DeleteConsumerGroup(r.Name)) }
		if err := contract.WhileMember(scenarioMember, r, 1, func() error { return reportDeletion("busy") }); err != nil {
			return err
		}
		if err := reportDeletion("deleted"); err != nil {
			return err
		}
		if err := reportListed(admin, r); err != nil {
			return err
		}
		return reportDeletion("again")
	})
}

func listGroupOffsets(r *run) error {
	return withAdmin(r, func(admin sarama.ClusterAdmin) error {
		if err := commit(r, 3, 7); err != nil {
			return err
		}
		return reportOffsets(admin, r, "offsets")
	})
}

func reportOffsets(admin sarama.ClusterAdmin, r *run, result string) error {
	found, err := notes(admin, r, 2)
	offsets := map[int32]int64{}
	for partition, note := range found {
		offsets[partition] = note.Offset
	}
	r.Report(result, offsets)
	return err
}

func deleteOffsets(r *run) error {
	return withAdmin(r, func(admin sarama.ClusterAdmin) error {
		if err := commit(r, 3, 7); err != nil {
			return err
		}
		reportDeletion := func(result string) error {
			return reportCode(r, result, admin.DeleteConsumerGroupOffset(r.Name, r.Name, 0))
		}
		if err := contract.WhileMember(scenarioMember, r, 2, func() error { return reportDeletion("busy") }); err != nil {
			return err
		}
		if err := reportDeletion("deleted"); err != nil {
			return err
		}
		return reportOffsets(admin, r, "left")
	})
}
